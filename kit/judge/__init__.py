"""The judge: whoever decides whether an answer meets a criterion, behind one verdict record."""
