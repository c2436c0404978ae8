"""Change feeds: the changes of answers, passed on to whoever follows a query over HTTP."""
