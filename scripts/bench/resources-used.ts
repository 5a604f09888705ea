/** Loaded before a program, tells at its end what it took: the most memory in KiB, and processor time in microseconds. */
process.once('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  process.stderr.write(`peak ${maxRSS} cpu ${userCPUTime + systemCPUTime}\n`)
})
