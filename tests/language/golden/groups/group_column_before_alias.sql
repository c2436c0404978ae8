SELECT dest AS carrier, COUNT(*) FROM flights GROUP BY carrier, dest
