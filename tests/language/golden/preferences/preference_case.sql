SELECT * FROM store1 s WITH PREFERENCE CASE WHEN s.itemno > 100 THEN items1.Estimate.Frequency(s.itemno) ELSE 0.5 * ABS(s.itemno) END, items1.Estimate.Count(s.itemno)
