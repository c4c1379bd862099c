def snippets():
    yield "{{ 1 + 2 }}", {}
