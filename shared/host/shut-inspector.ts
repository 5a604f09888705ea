/**
 * SIGUSR1 makes Node open a debugger on a port of this machine, for every account of it. With a listener it does not. To debug, start
 * the program with --inspect.
 */
export function shutInspector(): void {
  process.on('SIGUSR1', () => process.stderr.write('SIGUSR1 opens no debugger here: start with node --inspect\n'))
}
