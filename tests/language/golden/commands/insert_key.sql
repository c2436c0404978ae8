INSERT INTO fares (fare, carrier, dest, since) VALUES (99.10, 'WN', 'LAX', '2024-01-31')
