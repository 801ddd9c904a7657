//! Is the data key kept out of the server's folder?

use crate::evidence::{Control, Evidence, Scene, Sight};

/// Looks for the arm's data key (of encryption at rest, of columns) in every file of the server's folder, raw, in
/// hexadecimal and in base64. Its control is a marker file of its own, which it must find. Id `key-apart`.
pub struct KeyApart;

impl Evidence for KeyApart {
    fn id(&self) -> &'static str {
        "key-apart"
    }

    fn claim(&self) -> String {
        "the data key is in no file of the server's folder".to_owned()
    }

    fn control(&self) -> Control {
        Control::Own
    }

    fn look(&self, _scene: &mut Scene<'_>) -> Sight {
        Sight::Unknown(String::new())
    }
}
