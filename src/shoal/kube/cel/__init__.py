"""CEL, the expression language of validation rules in CustomResourceDefinitions.

* `program`: compiles an expression and evaluates it, within limits;
* `functions`: the functions that Kubernetes adds to the language.

The rules of a definition, and the objects they apply to, are the business of `structural_schema.validation_rules`.
Expressions are compiled and evaluated by cel-cpp (PyPI: cel-expr-python).
"""
