#!/usr/bin/env node
// The process on the customer's machines. Its tunnel, run store and isolation drivers are not part of this version, so
// it says so and stops instead of pretending to be a node.
process.stderr.write(
  'node-agent: this version cannot connect to a control plane yet. Runs execute inside the runtime process: start it with "npm start".\n',
)
process.exitCode = 1
