"""Starting one process of a Paddle job: wait until its peers are there, number them, then exec the program.

Job files of parameter-server training name a start command, `paddle_k8s start_fluid`, and leave the rest to it. This is
that command. `environment` reads what the container was given, `peers` decides (pure), `peer_watch` watches the pods.
"""
