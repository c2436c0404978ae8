SELECT 1 FROM flights a JOIN "Odd Names" a ON TRUE
