// FNV-1a, 64 bit: the one hash that names directories and recognises a ticket's content.

const offsetHigh = 0xcbf29ce4;
const offsetLow = 0x84222325;
/** The prime is 2^40 + this. */
const primeLow = 0x1b3;
const wordRange = 0x1_0000_0000;

function digits(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}

/** FNV-1a-64 of `bytes` as 16 lowercase hexadecimal digits, zero padded. */
export function contentHash(bytes: Uint8Array): string {
  // Two 32-bit halves: a BigInt for every byte would take a hundred times as long.
  let high = offsetHigh;
  let low = offsetLow;
  for (let at = 0; at < bytes.length; at += 1) {
    low = (low ^ (bytes[at] as number)) >>> 0;
    // Below 2^41, so exact; what overflows the low half is carried, and 2^40 moves the low half up by 8 bits.
    const product = low * primeLow;
    high = (Math.imul(high, primeLow) + Math.trunc(product / wordRange) + (low << 8)) | 0;
    low = product >>> 0;
  }
  return digits(high) + digits(low);
}
