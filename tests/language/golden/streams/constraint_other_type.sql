CREATE STREAM legs (code INTEGER, at TIMESTAMP, CONSTRAINT MANY ONE (code) TO airports (code)) WITH (timestamp = 'at')
