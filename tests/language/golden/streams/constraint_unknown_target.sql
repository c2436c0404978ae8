CREATE STREAM legs (a STRING, at TIMESTAMP, CONSTRAINT MANY ONE (a) TO airport (code)) WITH (timestamp = 'at')
