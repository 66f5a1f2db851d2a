"""The command line, one module per subcommand: HELP, add(parser), run(args) -> exit code."""
