CREATE STREAM legs (code STRING, CONSTRAINT MANY ONE (code) TO airports (code))
