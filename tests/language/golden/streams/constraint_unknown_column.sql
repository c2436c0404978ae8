CREATE STREAM legs (at TIMESTAMP, CONSTRAINT ORDERED (att)) WITH (timestamp = 'at')
