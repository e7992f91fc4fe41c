/** What one recording holds, and the figures that it gives. */

/** A message to the traced process, which answers each: `stop` with the recording. */
export type RecordingCommand = 'stop-clock' | 'start-clock' | 'start' | 'stop';

export interface TracedFunction {
  /** Below src/. */
  readonly file: string;
  readonly name: string;
  readonly line: number;
}

/** `calls` are indexes into `functions`, in the order of the calls. */
export interface RecordedCalls {
  readonly functions: readonly TracedFunction[];
  readonly calls: readonly number[];
}

export interface CallFigures {
  readonly calls: number;
  readonly functions: number;
  readonly files: number;
  /** How often a call is of another file than the call before it. */
  readonly fileChanges: number;
  readonly byFolder: ReadonlyMap<string, number>;
  readonly byFunction: ReadonlyMap<string, number>;
}

export function countCalls({ functions, calls }: RecordedCalls): CallFigures {
  const byFolder = new Map<string, number>();
  const byFunction = new Map<string, number>();
  const files = new Set<string>();
  let fileChanges = 0;
  let previousFile: string | undefined;
  for (const id of calls) {
    const called = functions[id];
    if (called === undefined) throw new Error(`no function has the number ${id}`);
    const { file, name, line } = called;
    const folder = file.includes('/') ? file.slice(0, file.indexOf('/')) : '.';
    byFolder.set(folder, (byFolder.get(folder) ?? 0) + 1);
    const key = `${file}:${line} ${name}`;
    byFunction.set(key, (byFunction.get(key) ?? 0) + 1);
    files.add(file);
    if (previousFile !== undefined && previousFile !== file) fileChanges++;
    previousFile = file;
  }
  return { calls: calls.length, functions: byFunction.size, files: files.size, fileChanges, byFolder, byFunction };
}

/** The recording with the fewest calls: what ends in the others for all requests is not part of one. */
export function pickLeast(recordings: readonly RecordedCalls[]): RecordedCalls {
  const [least] = recordings.toSorted((one, other) => one.calls.length - other.calls.length);
  if (least === undefined) throw new Error('nothing was recorded');
  return least;
}
