INSERT INTO planes VALUES (7, 'A320', 180), (+8, NULL, -3);
