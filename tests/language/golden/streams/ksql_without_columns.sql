CREATE STREAM s WITH (topic = 's')
