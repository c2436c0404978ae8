INSERT INTO parcels VALUES (1, '{a,"b, c",NULL}', '{1,2.5}', '{"a": "b"}', '[]', '{"a": 1}', '2024-01-01 00:00:00')
