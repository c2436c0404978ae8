SELECT * FROM (SELECT itemno AS item, price FROM store1 WHERE price > 5) s WHERE item < 10 WITH PREFERENCE SUMMARY.Estimate.Count(s.item)
