"""`python -m torchelastic.distributed.launch`, as in torchelastic 0.2."""
