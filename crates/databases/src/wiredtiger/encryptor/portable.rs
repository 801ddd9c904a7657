//! AES-256 without the processor's AES instructions, so that one arm can show what they save.
//!
//! The `aes` crate chooses by the processor and has no switch at run time. Its release 0.7 has one at compile time,
//! which selects the same bit-sliced code that its successors use as fallback. This file adapts that release to the
//! current interface. The authentication of GCM is not AES, and still uses carry-less multiplication instructions.

use aes::cipher::{
    Array, Block, BlockCipherDecBackend, BlockCipherDecClosure, BlockCipherDecrypt, BlockCipherEncBackend,
    BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, InOut, Key, KeyInit, KeySizeUser, ParBlocks,
    ParBlocksSizeUser,
    consts::{U8, U16, U32},
};
use aes_portable::{BlockDecrypt, BlockEncrypt, NewBlockCipher};

/// AES-256 in portable code.
pub struct PortableAes256(aes_portable::Aes256);

impl KeySizeUser for PortableAes256 {
    type KeySize = U32;
}

impl KeyInit for PortableAes256 {
    fn new(key: &Key<Self>) -> Self {
        Self(aes_portable::Aes256::new(key.0.as_slice().into()))
    }
}

impl BlockSizeUser for PortableAes256 {
    type BlockSize = U16;
}

/// As many blocks as the older release processes at once.
impl ParBlocksSizeUser for PortableAes256 {
    type ParBlocksSize = U8;
}

impl BlockCipherEncBackend for PortableAes256 {
    fn encrypt_block(&self, mut block: InOut<'_, '_, Block<Self>>) {
        let mut bytes = block.get_in().0.into();
        self.0.encrypt_block(&mut bytes);
        *block.get_out() = Array(bytes.into());
    }

    fn encrypt_par_blocks(&self, mut blocks: InOut<'_, '_, ParBlocks<Self>>) {
        let mut bytes = blocks.get_in().iter().map(|block| block.0.into()).collect();
        self.0.encrypt_par_blocks(&mut bytes);
        blocks.get_out().iter_mut().zip(bytes).for_each(|(block, bytes)| *block = Array(bytes.into()));
    }
}

impl BlockCipherDecBackend for PortableAes256 {
    fn decrypt_block(&self, mut block: InOut<'_, '_, Block<Self>>) {
        let mut bytes = block.get_in().0.into();
        self.0.decrypt_block(&mut bytes);
        *block.get_out() = Array(bytes.into());
    }

    fn decrypt_par_blocks(&self, mut blocks: InOut<'_, '_, ParBlocks<Self>>) {
        let mut bytes = blocks.get_in().iter().map(|block| block.0.into()).collect();
        self.0.decrypt_par_blocks(&mut bytes);
        blocks.get_out().iter_mut().zip(bytes).for_each(|(block, bytes)| *block = Array(bytes.into()));
    }
}

impl BlockCipherEncrypt for PortableAes256 {
    fn encrypt_with_backend(&self, work: impl BlockCipherEncClosure<BlockSize = U16>) {
        work.call(self);
    }
}

impl BlockCipherDecrypt for PortableAes256 {
    fn decrypt_with_backend(&self, work: impl BlockCipherDecClosure<BlockSize = U16>) {
        work.call(self);
    }
}

#[cfg(test)]
mod tests {
    use aes::Aes256;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cipher_is_aes() {
        // FIPS 197, section C.3.
        let key = std::array::from_fn(|index| index as u8);
        let mut block = Array(std::array::from_fn(|index| index as u8 * 0x11));
        BlockCipherEncrypt::encrypt_block(&PortableAes256::new(&Array(key)), &mut block);
        assert_eq!(block.0, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089u128.to_be_bytes());
    }

    proptest! {
        #[test]
        fn both_implementations_agree(key: [u8; 32], blocks in prop::collection::vec(any::<[u8; 16]>(), 0..11)) {
            let plain: Vec<_> = blocks.into_iter().map(Array).collect();
            let (mut portable, mut hardware) = (plain.clone(), plain.clone());
            PortableAes256::new(&Array(key)).encrypt_blocks(&mut portable);
            Aes256::new(&Array(key)).encrypt_blocks(&mut hardware);
            prop_assert_eq!(&portable, &hardware);
            PortableAes256::new(&Array(key)).decrypt_blocks(&mut portable);
            prop_assert_eq!(portable, plain);
        }
    }
}
