SELECT * FROM store1 a WHERE NOT EXISTS (SELECT * FROM store2 b WHERE a.itemno = b.itemno) WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno)
