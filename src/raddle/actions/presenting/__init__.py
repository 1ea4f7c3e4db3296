"""Handoffs made into what people look at: a report, a site of pages, slides."""
