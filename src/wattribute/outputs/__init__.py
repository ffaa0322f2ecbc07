"""Attribution → files: one module per output, named as its plug-in, with a function ``write``."""
