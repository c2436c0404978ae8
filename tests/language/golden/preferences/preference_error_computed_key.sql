SELECT * FROM store1 a, store2 b WHERE a.itemno = b.itemno + 1 WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
