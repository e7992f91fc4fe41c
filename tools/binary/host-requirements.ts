/** What an executable needs from the Linux that runs it, as readelf (binutils) reads it from the file. */
import { spawnSync } from 'node:child_process';

export interface HostRequirements {
  /** Shared libraries that the loader looks for, such as `libc.so.6`. */
  readonly libraries: readonly string[];
  /** The newest version of each series of symbols that these libraries must have, such as `GLIBC_2.28`. */
  readonly symbolVersions: readonly string[];
}

/** Undefined where there is no readelf, and for a file that is not ELF (macOS, Windows). */
export function readHostRequirements(file: string): HostRequirements | undefined {
  const { status, stdout } = spawnSync('readelf', ['--wide', '--dynamic', '--version-info', file], {
    encoding: 'utf8',
  });
  if (status !== 0) return undefined;
  const libraries = [...stdout.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name = '']) => name);
  const needs = stdout.slice(stdout.indexOf('Version needs section'));
  return {
    libraries,
    symbolVersions: newestOfEachSeries([...needs.matchAll(/Name: (\S+)/g)].map(([, name = '']) => name)),
  };
}

function newestOfEachSeries(versions: readonly string[]): string[] {
  const newest = new Map<string, string>();
  for (const version of versions) {
    const series = version.replace(/_[^_]*$/, '');
    if (version.localeCompare(newest.get(series) ?? '', 'en', { numeric: true }) > 0) newest.set(series, version);
  }
  return [...newest.values()].sort();
}
