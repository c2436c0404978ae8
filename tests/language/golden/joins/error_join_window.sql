SELECT 1 FROM (flights f JOIN weather w USING (dest)) [ROWS 5]
