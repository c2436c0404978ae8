SELECT * FROM store1 a, store2 b WHERE a.price = b.price WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
