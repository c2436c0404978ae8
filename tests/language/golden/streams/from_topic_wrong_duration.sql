CREATE STREAM orders FROM TOPIC 'orders' WITH (lateness = 'soon')
