// FNV-1a, 64 bit: the one hash that names directories and recognises a ticket's content.

const offsetBasis = 0xcbf29ce484222325n;
const prime = 0x100000001b3n;
const mask = 0xffffffffffffffffn;

/** FNV-1a-64 of `bytes` as 16 lowercase hexadecimal digits, zero padded. */
export function contentHash(bytes: Uint8Array): string {
  let hash = offsetBasis;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * prime) & mask;
  return hash.toString(16).padStart(16, "0");
}
