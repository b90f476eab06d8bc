"""An elastic image classifier. `order` and `lines` are plain Python; the rest needs torch."""
