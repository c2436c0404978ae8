CREATE STREAM s (a INT, b AS a + 1)
