CREATE STREAM legs (a INTEGER, at TIMESTAMP, CONSTRAINT one UNIQUE (a)) WITH (timestamp = 'at')
