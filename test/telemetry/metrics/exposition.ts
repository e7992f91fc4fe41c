/** Reads the Prometheus text format as far as the tests need it. */

/** Every sample by its series, as written: `name{label="value"}` → value. */
export function readSamples(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const space = line.lastIndexOf(' ');
    samples.set(line.slice(0, space), line.endsWith('+Inf') ? Infinity : Number(line.slice(space + 1)));
  }
  return samples;
}
