CREATE STREAM legs (a BIGINT, at TIMESTAMP, CONSTRAINT REFERENCES (a) TO planes (flight)) WITH (timestamp = 'at')
