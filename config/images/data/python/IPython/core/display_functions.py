from IPython.display import *  # noqa: F403
