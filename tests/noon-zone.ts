/**
 * A zone where it is about noon now. What a day may spend is counted by the days of the deployment's zone: a long test
 * that reads it would otherwise fail wherever midnight falls into it.
 */
export function noonZone(now = new Date()): string {
  const west = now.getUTCHours() - 12
  // The names of these zones count hours to the west of Greenwich, from -12 to 11 here.
  return west === 0 ? 'Etc/GMT' : `Etc/GMT${west > 0 ? '+' : ''}${west}`
}
