/** The texts of errors of the file system. They name neither the path nor the contents. */

/** The system's error code, such as `EROFS`. */
export function systemErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
}

/** Why a file cannot be read, as text that follows its name. */
export function describeFileError(error: unknown): string {
  const code = systemErrorCode(error);
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'cannot be read: permission denied';
    case 'EISDIR':
      return 'is a directory';
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return 'is not UTF-8 text';
    default:
      return `cannot be read (${code})`;
  }
}
