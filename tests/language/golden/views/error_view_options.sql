CREATE VIEW v AS SELECT carrier FROM flights WITH (topic = 'x')
