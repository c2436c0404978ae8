INSERT INTO parcels (id, ts, extra) VALUES (1, '2024-01-01', 'no json')
