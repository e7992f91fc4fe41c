/** The texts of errors of the file system. They name neither the path nor the contents. */

/** The system's error code, such as `EROFS`. */
export function systemErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
}

/** Why a file cannot be read, as text that follows its name. */
export function describeFileError(error: unknown): string {
  const code = systemErrorCode(error);
  return READ_FAULTS[code] ?? `cannot be read (${code})`;
}

const READ_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'cannot be read: permission denied',
  EPERM: 'cannot be read: permission denied',
  EISDIR: 'is a directory',
  EINVAL: 'is not a regular file',
  EAGAIN: 'is a pipe whose writer writes nothing',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
};
