def figures(record):
    return {}


def tables(record):
    return {}
