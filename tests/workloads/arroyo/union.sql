SELECT counter, 'first' AS source FROM impulse UNION ALL SELECT counter, 'second' AS source FROM impulse
