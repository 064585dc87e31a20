import logging
logging.warning("to stderr")
logging.getLogger("x").error("formatted %s", 1)
logging.basicConfig(level=logging.INFO, format="%(filename)s:%(lineno)d %(funcName)s %(message)s")
logging.info("x")
