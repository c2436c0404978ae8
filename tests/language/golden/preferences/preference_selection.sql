SELECT * FROM store1 WHERE price > 5 WITH PREFERENCE asc itemno * SUMMARY.Estimate.Count(itemno) FADE FACTOR 80 % WINDOW '1 minute'
