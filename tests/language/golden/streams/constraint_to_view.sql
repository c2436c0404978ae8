CREATE STREAM legs (a STRING, at TIMESTAMP, CONSTRAINT MANY ONE (a) TO late (carrier)) WITH (timestamp = 'at')
