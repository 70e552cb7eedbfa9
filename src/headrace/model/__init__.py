"""The vocabulary every room speaks; imports nothing of ours."""
