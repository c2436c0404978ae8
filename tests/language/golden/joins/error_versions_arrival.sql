SELECT 1 FROM "Odd Names" o JOIN fares t ON o."x; DROP" = t.carrier AND t.dest = o."x; DROP"
