CREATE STREAM legs (code STRING, at TIMESTAMP, CONSTRAINT MANY ONE (code) TO airports (city)) WITH (timestamp = 'at')
