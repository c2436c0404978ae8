CREATE STREAM legs (code STRING, at TIMESTAMP, CONSTRAINT MANY ONE (code) TO airports (cod)) WITH (timestamp = 'at')
